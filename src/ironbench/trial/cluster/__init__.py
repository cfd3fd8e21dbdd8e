"""The same trial driven from several processes or machines. Ray starts them, and is in no transaction's way."""
