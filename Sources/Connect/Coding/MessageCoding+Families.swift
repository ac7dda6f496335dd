internal import NIOCore
public import SwiftProtobuf

extension MessageCoding where Message: SwiftProtobuf.Message {
  public static var protobuf: MessageCoding {
    MessageCoding(binary: nil, json: nil)
  }
}

extension MessageCoding where Message: Codable {
  public static var codable: MessageCoding {
    MessageCoding(binary: nil, json: nil)
  }
}
