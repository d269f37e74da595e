"""Checks of the services a configuration names: Prefect, keys, the Hub, the ledger, disk and clock."""
