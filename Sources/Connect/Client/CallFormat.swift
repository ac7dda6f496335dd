/// How a call's messages are coded, where that may differ from the client's codec. An object, since most calls have none.
final class CallFormat {
  let choices: ProtocolChoices?
  let environment: CallEnvironment
  let parser: ResponseParser?

  // Not inlined: what is rare makes what is frequent slower.
  @inline(never)
  init(
    _ config: ProtocolClientConfig,
    _ method: MethodInfo,
    _ options: CallOptions,
    _ shard: ClientShards.Shard
  ) {
    let (own, other) = (options.format, config.methodFormats?(method))
    self.parser = own?.responseParser ?? other?.responseParser
    if let codec = own?.codec ?? other?.codec {
      (self.choices, self.environment) = shard.using(codec)
    } else {
      self.choices = shard.choices
      self.environment = shard.choices?.current ?? shard.environment
    }
  }
}
