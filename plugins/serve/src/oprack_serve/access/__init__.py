"""Who may send requests, and how they are kept from others on their way."""
