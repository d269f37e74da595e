"""Specification, manifest, versions, drift and audit of a release."""
