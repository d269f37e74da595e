"""Names of what several readers count in `IngestReport.flags`."""

NO_ACTION = "step without action"
BROKEN_OFF = "answer that broke off"  # by the user, a fault or the end of the record
OVER_LIMIT = "answer that the token limit or a filter cut off"
CHANGED_EXPORT = "export that lacks messages, or holds more of them than were written"
