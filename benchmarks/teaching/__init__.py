"""Does a release teach? Worlds, a student, scripted teachers, and arms to compare."""
