"""Claude Code session files."""
