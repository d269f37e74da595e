"""Rows to Parquet tables, splits and views of a release."""
