// An assembly file lets Go accept nextTimer without a body.
