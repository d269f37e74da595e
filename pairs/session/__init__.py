"""Label sources that read one recorded session."""
