"""Episodes: an agent works on a task with the tools of its harness, and is judged."""
