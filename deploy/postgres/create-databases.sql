-- Beside `tracemill`, the ledger, which the image makes: the database of the Prefect server.
CREATE DATABASE prefect OWNER tracemill;
