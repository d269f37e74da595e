"""The Hugging Face Hub: one commit and one tag a release."""
