/// How a call's messages are coded, where that may differ from the client's codec. An object, since most calls have none.
final class CallFormat {
  let choices: ProtocolChoices?
  let environment: CallEnvironment
  let parser: ResponseParser?

  private init(_ choices: ProtocolChoices?, _ environment: CallEnvironment, _ parser: ResponseParser?) {
    self.choices = choices
    self.environment = environment
    self.parser = parser
  }

  // Not inlined: what is rare makes what is frequent slower.
  @inline(never)
  static func make(
    _ config: ProtocolClientConfig,
    _ method: MethodInfo,
    _ options: CallOptions,
    _ shard: ClientShards.Shard
  ) -> CallFormat {
    let (own, other) = (options.format, config.methodFormats?(method))
    let parser = own?.responseParser ?? other?.responseParser
    guard let codec = own?.codec ?? other?.codec else {
      return CallFormat(shard.choices, shard.choices?.current ?? shard.environment, parser)
    }
    let (choices, environment) = shard.using(codec)
    return CallFormat(choices, environment, parser)
  }
}
