/// The environment of a channel, for its endpoints: there may be many, and each of their parts needs it.
final class SharedEnvironment {
  let environment: ChannelEnvironment

  init(_ environment: ChannelEnvironment) {
    self.environment = environment
  }
}
