"""Admission of traces: selection, forgotten list, redaction, versions."""
