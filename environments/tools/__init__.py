"""The tools of Claude Code and of OpenHands, executed in a sandbox."""
