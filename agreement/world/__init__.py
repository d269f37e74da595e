"""What is known of files and directories at a step, and actions applied to it."""
