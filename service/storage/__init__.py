"""The database that servers share: opening it, its tables, its threads, and the folder of data."""
