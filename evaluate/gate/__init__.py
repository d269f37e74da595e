"""The gate on a table: what it chooses and what that costs."""
