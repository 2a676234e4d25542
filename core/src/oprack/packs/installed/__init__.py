"""Packs as they are installed: entry points, the allow-list, manifests and what they name, and the cache of it all."""
