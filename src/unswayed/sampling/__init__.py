"""Everything that is random: threat models, the stream of noise, classifiers, and the engines that ask them."""
