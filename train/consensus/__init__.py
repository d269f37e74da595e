"""States that teachers answered in, and the reward of an action there by what they answered."""
