"""The frozen vocabulary every stage speaks; imports nothing of ours."""
