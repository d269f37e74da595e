"""Read session files of Claude Code."""
