"""Models of Paddle 3: its `inference.json`, a PIR program as text, becomes a Program with Fluid's ops."""
