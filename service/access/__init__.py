"""Who may ask, and how much: keys, rates, quotas, addresses of clients."""
