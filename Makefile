# Aliases for people whose fingers say make; `./run` and `./test` are the real thing.
.PHONY: run test
run:
	./run
test:
	./test
