"""Read rollouts of Codex CLI."""
