"""Names that are not there: which distribution brings one, how other libraries' are spelled here."""
