"""Consent: projects, destinations, and who accepted them."""
