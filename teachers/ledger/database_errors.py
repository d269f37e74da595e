"""Describe database errors without any part of a statement, a row or a password.

SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html.
"""

from ssl import SSLCertVerificationError

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

_NO_SSL = "Server refuses SSL"  # pg8000
_REFUSALS = {
    "28000": "the server requires another way of logging in for this user",
    "28P01": "the server refuses the user or the password",
    "3D000": "the server has no database of that name",
    "42501": "the user lacks permission to create or write tables",
    "53100": "the server's disk is full",
    "53300": "the server has no free connection",
    "55P03": "another process has held the ledger for too long",
    "57P01": "the server is stopping",
    "57P03": "the server is starting or stopping",
    "SQLITE_BUSY": "another process has held the ledger for too long",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_NOTADB": "the file is not a SQLite database",
    "SQLITE_READONLY": "the file or its folder is read-only",
}


def database_error_reason(error: SQLAlchemyError | OSError) -> str:
    """Return the reason given by the database, the system or the driver."""
    if isinstance(error, SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    fault = error.orig if isinstance(error, DBAPIError) else None
    if fault is None:
        return type(error).__name__
    code = _code_of(fault)
    if code:
        return _REFUSALS.get(code, f"the database says {code}")
    if fault.args == (_NO_SSL,):
        return "the server has no encryption"
    cause = fault.__cause__
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    return type(fault).__name__


def _code_of(fault: BaseException) -> str:
    """Return PostgreSQL's SQLSTATE or the name of SQLite's error code; "" if there is none."""
    details = fault.args[0] if fault.args and isinstance(fault.args[0], dict) else {}
    names = ("sqlstate", "sqlite_errorname")
    return details.get("C") or next((code for name in names if (code := getattr(fault, name, None))), "")
