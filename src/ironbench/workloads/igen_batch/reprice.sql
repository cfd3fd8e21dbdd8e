-- New prices for a range of products, and for their sales of the newest month.
\set first random(1, :products - :repriced + 1)
\set change random(1, 5000)
call batch_reprice(:first, :repriced, :change);
