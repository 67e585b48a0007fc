"""Plans over noisy graphs in several arrangements, and the engines that choose among them."""
