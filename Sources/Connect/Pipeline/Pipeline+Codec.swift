internal import NIOCore

// Between the levels: message hooks are outside of the codec, byte hooks inside.
extension Pipeline {
  /// - Returns: Nil if the part cannot be encoded, which has failed the call.
  func encode(_ part: RequestPart, _ host: any PipelineHost) -> RequestPart? {
    do throws(ConnectError) {
      let encoded = try host.encode(part)
      switch encoded {
      case .bytes(let bytes):
        self.order.charge(bytes.readableBytes)
        if self.hasAsyncStages { self.charge(bytes.readableBytes) }
        self.order.note(encoded, atMessages: false)
      case .end, .message:
        self.order.note(encoded, atMessages: false)
      case .whole, .wholeBytes, .head:
        if self.hasByteStages { self.begin(atMessages: false, encoded) }
      }
      return encoded
    } catch {
      self.fail(with: error, host)
      return nil
    }
  }

  private func charge(_ byteCount: Int) {
    for stage in self.stages {
      if case .async(let stage) = stage.form { stage.charge(byteCount) }
    }
  }

  /// Begins a level with the first part that comes to it.
  func begin(atMessages: Bool, _ part: RequestPart) {
    let level = atMessages ? 0..<self.order.codec : self.order.codec + 1..<self.stages.count
    guard !level.isEmpty else { return }
    self.order.begin(
      atMessages: atMessages,
      with: part,
      maximumReplayBytes: self.maximumReplayBytes,
      keepsMessages: self.stages[level].contains { stage in
        if case .hooks(let hooks) = stage.form { hooks.kinds.seesResult } else { false }
      }
    )
  }

  /// The codec has found an error: it takes the place of what is inside.
  func fail(with error: ConnectError, _ host: any PipelineHost) {
    guard !host.isOver else { return }
    let end: ResultPart = self.order.isUnary ? .whole(AnyResponse(error: error)) : .failed(error)
    self.answer(at: self.order.codec, with: [end], host)
  }

  /// - Returns: Nil if the result cannot be decoded, which has failed the call.
  func decode(_ result: ResultPart, _ host: any PipelineHost) -> ResultPart? {
    do throws(ConnectError) {
      let decoded = try host.decode(result)
      // A codec is code of users, which may end the call.
      return host.isOver ? nil : decoded
    } catch {
      self.fail(with: error, host)
      return nil
    }
  }
}
