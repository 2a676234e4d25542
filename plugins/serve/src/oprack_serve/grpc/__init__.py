"""The open inference protocol over gRPC, on the same models, queues and limits as HTTP."""
