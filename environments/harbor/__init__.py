"""Harbor's task format (https://www.harborframework.com/docs/tasks)."""
