"""The gRPC server: decodes, calls one method of the application, encodes."""
