"""oprack behind engines that exist: applications and backends that reuse what `oprack serve` is made of."""
