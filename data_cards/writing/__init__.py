"""Write the Parquet tables, splits and views of a release."""
