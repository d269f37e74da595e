"""Read spans of OpenTelemetry that follow the conventions for generative AI."""
