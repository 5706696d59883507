"""What every other room may use: errors, settings, log, metrics, manifest, contract, database."""
