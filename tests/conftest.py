"""What every test needs of its own process."""

import signal

# A shell that starts a program in the background makes it ignore Ctrl-C, and so would every ironbench that the tests
# start. What has a handler here is back at its default in a program that is started from here.
signal.signal(signal.SIGINT, signal.default_int_handler)
