"""Make tasks of repositories: delete a feature that tests cover, and ask for it back."""
