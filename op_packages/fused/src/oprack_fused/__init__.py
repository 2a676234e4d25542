"""Op pack of fused ops, each made of the plain ops that it stands for."""
