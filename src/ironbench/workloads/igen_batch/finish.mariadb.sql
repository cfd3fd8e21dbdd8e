call batch_tidy();
