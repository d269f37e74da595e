"""When two actions are the same, who may vote, and when a vote is settled."""
