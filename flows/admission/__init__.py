"""Which traces stay, and as what text: selection, forgotten list, redaction, versions."""
