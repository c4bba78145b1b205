"""The stores of other frameworks, in processes of their own that have these frameworks."""
