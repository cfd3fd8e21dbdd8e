-- A transaction that begins with a read may not write once another one has written.
BEGIN IMMEDIATE;
