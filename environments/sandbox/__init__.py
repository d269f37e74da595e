"""Run commands on untrusted files without network and within limits."""
