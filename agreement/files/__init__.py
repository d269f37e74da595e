"""Texts of files as the session showed them, and edits of them."""
