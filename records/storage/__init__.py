"""The workspace on disk: Parquet shards, schemas, atomic files."""
